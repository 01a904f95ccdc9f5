"""The main job of the project (`make demo`): one topic, three tables, both layers, one release, two crashes."""
