"""What every layer uses: errors, files, field metadata, registries, and facts about the machine."""
