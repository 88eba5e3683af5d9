// Lists the conversations of the gateway, and sends one to another model.

const status = document.getElementById("status");
const keyForm = document.getElementById("key-form");
let key = "";

async function ask(path, options = {}) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const reply = await fetch(path, { ...options, headers });
  const body = await reply.json();
  if (reply.status === 401) {
    keyForm.hidden = false;
  }
  if (!reply.ok) {
    throw new Error(body.error);
  }
  keyForm.hidden = true;
  return body;
}

function cell(row, text) {
  const made = document.createElement("td");
  made.textContent = text;
  row.append(made);
  return made;
}

function addRow(rows, conversation, caching) {
  const row = document.createElement("tr");
  cell(row, new Date(conversation.time).toLocaleString());
  cell(row, conversation.client || "unknown");
  cell(row, conversation.model || "no model yet");
  cell(row, caching && caching.input ? `${Math.round((100 * caching.cached) / caching.input)} % of the input` : "");
  cell(row, caching ? `$${caching.saved.toFixed(4)}` : "");
  const form = document.createElement("form");
  const field = document.createElement("input");
  field.setAttribute("list", "models");
  field.setAttribute("aria-label", `Model for the conversation of ${conversation.client || "unknown"}`);
  field.placeholder = "the model that the client names";
  field.value = conversation.chosen || "";
  const send = document.createElement("button");
  send.textContent = "Switch";
  form.append(field, send);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const model = field.value.trim() || null;
    try {
      await ask(`/segue/conversations/${conversation.id}`, { method: "PUT", body: JSON.stringify({ model }) });
      status.textContent = model
        ? `The next request of this conversation goes to ${model}.`
        : "The next request of this conversation goes to the model that the client names.";
    } catch (error) {
      status.textContent = error.message;
    }
  });
  cell(row, "").append(form);
  rows.append(row);
}

async function show() {
  try {
    const { conversations, caching, models, drift } = await ask("/segue/conversations");
    const rows = document.getElementById("rows");
    rows.replaceChildren();
    document.getElementById("models").replaceChildren(...models.map((name) => new Option(name, name)));
    conversations.forEach((conversation) => addRow(rows, conversation, caching[conversation.id]));
    document.getElementById("table").hidden = conversations.length === 0;
    const names = Object.entries(drift).map(([name, times]) => {
      const item = document.createElement("li");
      item.textContent = `${name} (${times})`;
      return item;
    });
    document.getElementById("drift-names").replaceChildren(...names);
    document.getElementById("drift").hidden = names.length === 0;
    status.textContent = conversations.length === 0 ? "There is no conversation yet." : "";
  } catch (error) {
    status.textContent = error.message;
  }
}

keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  key = document.getElementById("key").value;
  show();
});

show();
