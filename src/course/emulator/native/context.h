// Switching between stacks: the one piece of assembly. `ucontext` does the same, six times slower, with a system call.
#pragma once

extern "C" {
// Saves the callee-saved registers on the current stack, stores its pointer in `*saved`, and goes on at `next`.
void msl_switch_context(void** saved, void* next);
}

namespace msl {

// A stack pointer for msl_switch_context, below `top`, at which `start` begins. `start` must never return.
void* make_context(char* top, void (*start)());

}  // namespace msl
