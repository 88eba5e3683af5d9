// How search results are ordered: guides first, then the pages to look things up, then records of the project.
// Sphinx reads this object instead of its own; the numbers below `score` are its defaults (Sphinx 9.0.4).
const TASKS = /^(guides\/|frameworks\/|getting-started|example|switching|recipes)/;
const TOPICS = /^(projection|windows|server-tools|client|failures|speed)/;
const PROGRAMS = /^(command-line|inspector|stored-format)/;
const RECORDS = /^(decisions\/|benchmarks\/|changelog|contributing|reference\/)/;

var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
    if (TASKS.test(page)) return score + 50;
    if (TOPICS.test(page)) return score + 40;
    if (PROGRAMS.test(page)) return score + 20;
    return RECORDS.test(page) ? score - 10 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
