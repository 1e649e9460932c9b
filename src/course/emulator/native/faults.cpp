#include "faults.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <memory>

#include "access.h"
#include "findings.h"
#include "scheduler.h"
#include "watchdog.h"

namespace msl {

namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int kAll = 5;
constexpr size_t kHandlerStack = 64 << 10;

// One launch runs at a time, so there is one of each.
sigjmp_buf escape;
volatile sig_atomic_t running = 0;
pthread_t runner;
struct sigaction before[kAll];

int signal_number(int i) { return i < 4 ? kFaults[i] : Watchdog::kSignal; }

uintptr_t program_counter(void* context) {
  [[maybe_unused]] const auto* user = static_cast<const ucontext_t*>(context);
#if defined(__linux__) && defined(__x86_64__)
  return static_cast<uintptr_t>(user->uc_mcontext.gregs[REG_RIP]);
#elif defined(__linux__) && defined(__aarch64__)
  return user->uc_mcontext.pc;
#elif defined(__APPLE__) && defined(__x86_64__)
  return user->uc_mcontext->__ss.__rip;
#elif defined(__APPLE__) && defined(__aarch64__)
  return __darwin_arm_thread_state64_get_pc(user->uc_mcontext->__ss);
#else
  return 0;
#endif
}

bool in_kernel(uintptr_t pc) { return pc >= checks.library_begin && pc < checks.library_end; }
bool is_ours() { return running && pthread_equal(pthread_self(), runner) && scheduler.current() >= 0; }

// Places are return addresses everywhere else: one byte past the instruction stands for it here.
[[noreturn]] void end_launch(Kind kind, uintptr_t pc, const void* address) {
  Finding* finding = findings.add(kind, in_kernel(pc) ? pc + 1 - checks.library_begin : 0, {});
  if (finding && address) finding->offset = reinterpret_cast<intptr_t>(address);
  scheduler.abandon();
  siglongjmp(escape, 1);
}

Kind kind_of(int number, const void* address) {
  constexpr uintptr_t kNullPage = 1 << 16;
  if (number == SIGFPE) return Kind::division_by_zero;
  if (number == SIGILL) return Kind::illegal_instruction;
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (scheduler.stacks().owner(at) >= 0) return Kind::stack_overflow;
  return at < kNullPage ? Kind::null_pointer : Kind::wild_pointer;
}

void on_fault(int number, siginfo_t* info, void* context) {
  if (is_ours()) {
    const bool memory_fault = number == SIGSEGV || number == SIGBUS;
    const void* address = memory_fault ? info->si_addr : nullptr;
    end_launch(kind_of(number, address), program_counter(context), address);
  }
  // Not a kernel's: put the earlier handler back, and let the instruction fault again.
  for (int i = 0; i < kAll; ++i)
    if (signal_number(i) == number) sigaction(number, &before[i], nullptr);
}

void on_time_limit(int, siginfo_t*, void* context) {
  if (!is_ours()) return;
  if (in_kernel(program_counter(context))) end_launch(Kind::time_limit, program_counter(context), nullptr);
  scheduler.hurry();  // in the runtime or in a library's function: never jump out of that
}

class Handlers {
 public:
  Handlers() : stack_(new char[kHandlerStack]) {
    stack_t own{};
    own.ss_sp = stack_.get();
    own.ss_size = kHandlerStack;
    sigaltstack(&own, &earlier_);
    for (int i = 0; i < kAll; ++i) {
      struct sigaction action = {};
      action.sa_sigaction = signal_number(i) == Watchdog::kSignal ? on_time_limit : on_fault;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
      sigaction(signal_number(i), &action, &before[i]);
    }
  }
  ~Handlers() {
    for (int i = 0; i < kAll; ++i) sigaction(signal_number(i), &before[i], nullptr);
    sigaltstack(&earlier_, nullptr);
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;

 private:
  std::unique_ptr<char[]> stack_;
  stack_t earlier_{};
};

}  // namespace

void run_guarded(double seconds, const std::function<void()>& work) {
  const Handlers handlers;
  runner = pthread_self();
  {
    const Watchdog watchdog(seconds);
    running = 1;
    if (sigsetjmp(escape, 1) == 0) work();
    running = 0;
  }
}

}  // namespace msl
