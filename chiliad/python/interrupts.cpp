#include "chiliad/python/interrupts.h"

#include <unistd.h>

#include <mutex>
#include <thread>

#include "chiliad/python/bindings.h"
#include "chiliad/python/rank_loader.h"

namespace nb = nanobind;

namespace chiliad::python {
namespace {

// At the end of the interpreter:
// 1. `ending` is set. Threads that come back without the GIL do not ask for it from now on.
// 2. Those that had asked get it.
// 3. Loaders are closed, so that none of their threads is there when statics go.
struct End {
  std::atomic<bool> ending{false};
  std::atomic<int64_t> asking{0};  // threads
  std::thread::id ender;
  const pid_t process = ::getpid();
};

End& end() {
  static auto* const kEnd = new End;  // threads may come back after statics are gone
  return *kEnd;
}

void end_all() {
  if (::getpid() != end().process) return;  // a fork has none of the threads that are counted
  end().ender = std::this_thread::get_id();
  end().ending = true;
  const WithoutGil released;
  while (end().asking > 0) std::this_thread::yield();
  RankLoader::close_all();
}

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
  ++end().asking;
  if (end().ending && end().ender != std::this_thread::get_id()) {
    --end().asking;
    for (;;) ::pause();
  }
  PyEval_RestoreThread(state_);
  --end().asking;
}

void bind_end(nb::module_& /*module*/) {
  static_cast<void>(end());
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_all));
}

}  // namespace chiliad::python
