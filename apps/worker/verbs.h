#pragma once

#include "apps/command_line/command_line.h"

namespace chiliad::worker {

void add_train(cli::Verb& app);
void add_generate(cli::Verb& app);
void add_eval(cli::Verb& app);
void add_probe(cli::Verb& app);
void add_encode(cli::Verb& app);
void add_verify_layout(cli::Verb& app);
void add_extensions(cli::Verb& app);

}  // namespace chiliad::worker
