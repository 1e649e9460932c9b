// What a kernel thread does to the processor: a wild pointer, a stack that overflows, a division by zero, a loop that
// never ends. Each becomes a finding, and the launch ends; Python never notices. All other faults go where they went.
#pragma once
#include <functional>

namespace msl {

// Runs `work` on this CPU thread with faults caught. A launch that uses more than `seconds` of CPU time is stopped.
void run_guarded(double seconds, const std::function<void()>& work);

}  // namespace msl
