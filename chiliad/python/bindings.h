#pragma once

#include <nanobind/nanobind.h>

namespace chiliad::python {

// One function a file; the types of earlier ones are used by later ones.
void bind_errors(nanobind::module_& module);
void bind_index(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_loader(nanobind::module_& module);
/// Closes all loaders when the interpreter ends.
void bind_end(nanobind::module_& module);

}  // namespace chiliad::python
