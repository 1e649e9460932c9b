// One dispatch of one kernel: from buffers in ordinary memory to outputs, findings and counters.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access.h"
#include "counters.h"
#include "findings.h"
#include "library.h"

namespace msl {

struct Buffer {
  Role role;
  std::string name;
  char* data;           // where index 0 is
  int64_t first = 0;    // bytes before it that belong to the buffer: negative or 0
  size_t size = 0;      // bytes from there
  size_t element = 1;
  bool defined = true;  // an output with an initial value
  bool floating = false;
};

struct Options {
  int order = 0;
  uint64_t step_limit = 0;
  double time_limit = 0;
  int trace = -1;         // the threadgroup whose accesses are kept
  bool raise_on_fatal = false;
  int64_t tag = 0;        // 0: nobody will ask for the record
};

// Everything about a launch but its data.
struct Dispatch {
  std::shared_ptr<const Library> library;
  const Kernel* kernel;
  Uint3 grid, threadgroup;  // in threads
  std::map<int, size_t> threadgroup_bytes;
  Options options;
};

struct Record {
  int64_t tag;
  std::string kernel;
  Uint3 grid, threadgroup;
  bool checked, stopped;
  double seconds;  // of CPU time
  std::vector<Finding> findings;
  Counters counters;
  std::vector<TracedAccess> trace;
};

// `buffers[i]` is [[buffer(i)]]. One launch at a time: a second one waits.
Record run(const Dispatch& dispatch, const std::vector<Buffer>& buffers);

}  // namespace msl
