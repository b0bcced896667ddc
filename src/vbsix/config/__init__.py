"""Every setting of a run: the schema, its presets, and its TOML form."""
