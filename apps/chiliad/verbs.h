#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace chiliad::cli {

/// What the chosen verb does; returns the exit code. Set while the command line is parsed.
using Action = std::function<int()>;

// Each adds one verb to `parent`: its options, help and example. `action` outlives the parse.
void add_data_index(CLI::App& parent, Action& action);
void add_data_build(CLI::App& parent, Action& action);
void add_data_stats(CLI::App& parent, Action& action);
void add_data_verify(CLI::App& parent, Action& action);
void add_data_pack(CLI::App& parent, Action& action);
void add_data_plan(CLI::App& parent, Action& action);
void add_encode(CLI::App& parent, Action& action);
void add_data_show(CLI::App& parent, Action& action);
void add_data_quarantine(CLI::App& parent, Action& action);
void add_train(CLI::App& parent, Action& action);
void add_verify_layout(CLI::App& parent, Action& action);
void add_ckpt_ls(CLI::App& parent, Action& action);
void add_ckpt_verify(CLI::App& parent, Action& action);
void add_ckpt_diff(CLI::App& parent, Action& action);
void add_ckpt_export(CLI::App& parent, Action& action);
void add_ckpt_import(CLI::App& parent, Action& action);
void add_ckpt_prune(CLI::App& parent, Action& action);
void add_report(CLI::App& parent, Action& action);
void add_new(CLI::App& parent, Action& action);
void add_version(CLI::App& parent, Action& action);
void add_docs(CLI::App& parent, Action& action);

/// Verbs that need tensors, listed in the help; `chiliad-worker` reads their arguments.
void add_worker_verbs(CLI::App& parent);
[[nodiscard]] bool is_worker_verb(const std::string& name);
/// Becomes chiliad-worker with `arguments`; returns only by an exception.
[[noreturn]] void become_worker(const std::vector<std::string>& arguments);

}  // namespace chiliad::cli
