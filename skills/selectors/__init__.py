"""Reads of the skills app, a module per subject; every queryset is scoped to an owner or an organization."""
