#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "apps/worker/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/device/tensor.h"
#include "chiliad/encode/encode_parts.h"
#include "chiliad/ipc/child_process.h"
#include "chiliad/loader/run_inputs.h"

namespace chiliad::worker {
namespace {

struct EncodeArguments {
  std::string run_file;
  std::string kind;
  encode::Share share;
  int parent = 0;
};

#ifdef CHILIAD_FAULTS
/// CHILIAD_KILL_ENCODE=N kills this process before its N-th part is there; for the tests of exactly once.
void maybe_die(int64_t part) {
  static const char* const at = std::getenv("CHILIAD_KILL_ENCODE");
  if (at != nullptr && std::to_string(part) == at) std::raise(SIGKILL);
}
#else
void maybe_die(int64_t) {}
#endif

int run_encode(const EncodeArguments& arguments) {
  ipc::die_with_parent(arguments.parent);
  const auto run = spec::read_run_file(arguments.run_file, {});
  device::set_compute_threads(static_cast<int>(run.parallel.threads));
  const auto index = loader::open_index(run.data);
  const auto kind = arguments.kind == "latents" ? features::Kind::kLatents : features::Kind::kText;
  encode::encode_parts(run, index, kind, arguments.share, maybe_die);
  return 0;
}

}  // namespace

void add_encode(cli::Verb& app) {
  auto arguments = std::make_shared<EncodeArguments>();  // shared with the callback until the program ends
  cli::Verb verb = app.add("encode", "one share of `chiliad encode`");
  verb.option("run_file", arguments->run_file, "resolved run file").required();
  verb.option("--kind", arguments->kind, "latents or text").one_of({"latents", "text"}).required();
  verb.option("--rank", arguments->share.rank, "which share").required();
  verb.option("--of", arguments->share.size, "number of shares").required();
  verb.option("--parent", arguments->parent, "process to end with").required();
  verb.run([arguments] { return run_encode(*arguments); });
}

}  // namespace chiliad::worker
