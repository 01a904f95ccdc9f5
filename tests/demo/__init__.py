"""The main job (`make demo`): one topic, three tables, both layers, one release, two crashes."""
