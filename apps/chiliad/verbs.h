#pragma once

#include <string>
#include <vector>

#include "apps/command_line/command_line.h"

namespace chiliad::cli {

// Each adds one verb to `parent`: its options, help and example.
void add_data_index(Verb& parent);
void add_data_build(Verb& parent);
void add_data_stats(Verb& parent);
void add_data_verify(Verb& parent);
void add_data_pack(Verb& parent);
void add_data_plan(Verb& parent);
void add_encode(Verb& parent);
void add_data_show(Verb& parent);
void add_data_quarantine(Verb& parent);
void add_train(Verb& parent);
void add_verify_layout(Verb& parent);
void add_ckpt_ls(Verb& parent);
void add_ckpt_verify(Verb& parent);
void add_ckpt_diff(Verb& parent);
void add_ckpt_export(Verb& parent);
void add_ckpt_import(Verb& parent);
void add_ckpt_prune(Verb& parent);
void add_report(Verb& parent);
void add_new(Verb& parent);
void add_version(Verb& parent);
void add_docs(Verb& parent);

/// Verbs that need tensors, listed in the help; `chiliad-worker` reads their arguments.
void add_worker_verbs(Verb& parent);
[[nodiscard]] bool is_worker_verb(const std::string& name);
/// Becomes chiliad-worker with `arguments`; returns only by an exception.
[[noreturn]] void become_worker(const std::vector<std::string>& arguments);

}  // namespace chiliad::cli
