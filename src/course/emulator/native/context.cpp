#include "context.h"

#include <cstdint>
#include <cstring>

#if defined(__APPLE__)
#define MSL_SWITCH "_msl_switch_context"
#define MSL_HIDE ".private_extern _msl_switch_context\n"
#else
#define MSL_SWITCH "msl_switch_context"
#define MSL_HIDE ".hidden msl_switch_context\n.type msl_switch_context, %function\n"
#endif

#if defined(__x86_64__)

asm(".text\n.globl " MSL_SWITCH "\n" MSL_HIDE MSL_SWITCH R"(:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace msl {

void* make_context(char* top, void (*start)()) {
  auto* slot = reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  *--slot = 0;  // where `start` would return to; with it the stack is aligned as after a call
  *--slot = reinterpret_cast<uint64_t>(start);
  for (int saved = 0; saved < 6; ++saved) *--slot = 0;
  return slot;
}

}  // namespace msl

#elif defined(__aarch64__)

// From the AAPCS64: x19-x30 and the low halves of v8-v15 are saved. Unverified: run under QEMU, never on hardware.
asm(".text\n.globl " MSL_SWITCH "\n.p2align 2\n" MSL_HIDE MSL_SWITCH R"(:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");

namespace msl {

void* make_context(char* top, void (*start)()) {
  constexpr int kSaved = 20, kLinkRegister = 11;  // x30 is the 12th of the 20 words above
  auto* frame = reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15}) - kSaved;
  std::memset(frame, 0, kSaved * sizeof(uint64_t));
  frame[kLinkRegister] = reinterpret_cast<uint64_t>(start);
  return frame;
}

}  // namespace msl

#else
#error "the kernel emulator knows x86-64 and aarch64 only"
#endif
