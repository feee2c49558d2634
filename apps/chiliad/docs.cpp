#include <fmt/core.h>

#include <memory>

#include "apps/chiliad/verbs.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::cli {

void add_docs(Verb& parent) {
  Verb docs = parent.add("docs", "Prints reference pages that are made from the code");
  auto schema = std::make_shared<bool>(false);  // shared by the parser and the action, until the end
  Verb verb = docs.add("run-file", "Every section and key of a run file, with defaults and ranges");
  verb.flag("--schema", *schema, "Prints the JSON Schema instead of the Markdown page");
  verb.footer("Example: chiliad docs run-file --schema > run.schema.json");
  verb.run([schema] {
    fmt::print("{}\n", *schema ? spec::json_schema() : spec::reference_page());
    return 0;
  });
}

}  // namespace chiliad::cli
