"""Skills in and out: SKILL.md files, and the tables of the original."""
