"""Statistics on arrays: intervals, tests, jackknife, association. Arrays in, arrays out."""
