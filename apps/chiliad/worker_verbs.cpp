#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/supervise/launch/workers.h"

namespace chiliad::cli {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 3> kWorkerVerbs{
    {{"generate", "Pictures from a checkpoint: chiliad generate CKPT --prompt \"a dog\" --out dog.png"},
     {"eval", "Does a checkpoint make what it was shown? chiliad eval CKPT --json"},
     {"probe", "Measures the rates of this machine's devices"}}};

}  // namespace

void add_worker_verbs(Verb& parent) {
  for (const auto& [name, help] : kWorkerVerbs) parent.add(name, help);
}

bool is_worker_verb(const std::string& name) {
  for (const auto& [known, help] : kWorkerVerbs) {
    if (name == known) return true;
  }
  return false;
}

void become_worker(const std::vector<std::string>& arguments) {
  std::string program = supervise::worker_program();
  std::vector<std::string> owned = arguments;
  std::vector<char*> argv{program.data()};
  for (auto& argument : owned) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw InvalidInput(program, fmt::format("cannot be executed: {}", std::strerror(errno)));
}

}  // namespace chiliad::cli
