"""Statistics on arrays: arrays in, arrays out, no knowledge of what was measured."""
