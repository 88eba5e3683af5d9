"""`python -m segue`: the program, where its script is not on the path."""

from segue.cli.entry import main

main()
