"""Before a switch: what the next requests of a conversation would cost at other models, and what would be lost."""
