"""Moving over from a database of the original MIRIX, of whatever generation: read there, written here.

`source` reads, `values` and `memories` know what stands in its rows, `people` whose they are; `skills`,
`sessions` and `experiences` write them by the services of their rooms, and `service` goes through the tables.
"""
