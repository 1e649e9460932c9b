"""Metal's address spaces."""

SPACES = frozenset({"device", "constant", "thread", "threadgroup", "threadgroup_imageblock", "ray_data", "object_data"})

# Words that may stand between an address space and the type it belongs to, or after the type.
QUALIFIERS = frozenset(
    {"const", "volatile", "static", "inline", "constexpr", "typename", "unsigned", "signed", "alignas"}
)
