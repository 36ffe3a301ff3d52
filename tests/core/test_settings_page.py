from pathlib import Path

from barkspider.core.load import PRESETS, describe_settings

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text("utf-8")


def test_the_page_of_settings_is_complete_and_true() -> None:
    for name, default, meaning in describe_settings():
        assert f"| `{name}` | `{default}` | {meaning} |" in PAGE
    for preset, values in PRESETS.items():
        assert f"| `{preset}` |" in PAGE
        assert all(f"`{name}=" in PAGE for name in values)
