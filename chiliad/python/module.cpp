#include <cstdlib>

#include "chiliad/python/bindings.h"

NB_MODULE(_native, module) {
  // Interpreters that end with objects alive are no news to users; tests want to know.
  nanobind::set_leak_warnings(std::getenv("CHILIAD_LEAK_WARNINGS") != nullptr);
  module.doc() = "Bindings of Chiliad's data plane; use the package chiliad.";
  module.attr("version") = CHILIAD_VERSION;
  chiliad::python::bind_errors(module);
  chiliad::python::bind_index(module);
  chiliad::python::bind_plan(module);
  chiliad::python::bind_loader(module);
  chiliad::python::bind_end(module);
}
