// The runtime header has what this one declares.
#pragma once
