"""From Metal to C++: a translator of tokens. It knows no grammar beyond brackets, attributes and declarations."""
