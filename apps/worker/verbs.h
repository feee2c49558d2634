#pragma once

namespace CLI {
class App;
}

namespace chiliad::worker {

void add_train(CLI::App& app, int& code);
void add_generate(CLI::App& app, int& code);
void add_eval(CLI::App& app, int& code);
void add_probe(CLI::App& app, int& code);
void add_encode(CLI::App& app, int& code);
void add_verify_layout(CLI::App& app, int& code);
void add_extensions(CLI::App& app, int& code);

}  // namespace chiliad::worker
