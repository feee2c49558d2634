#pragma once

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "chiliad/layers/layer_maker.h"
#include "chiliad/objective/loss_extension.h"
#include "chiliad/spec/extension.h"

namespace chiliad {

/// A loss by name: `objective.kind: NAME`.
struct Objective {
  std::string name;
  std::string base = "flow";  ///< flow or ddpm: paths, times and samplers are its own
  std::vector<spec::OwnOption> options = {};
  objective::Losses losses = nullptr;
};

/// What a library of extensions brings. Names are words of a to z, 0 to 9 and _; each method throws
/// InvalidInput for other names and for one that is there already.
class Registry {
 public:
  /// A kind of layer, for tables of families: spec::extension_layer(name, ...).
  void add_layer(const std::string& name, layers::MakeLayer make);
  /// The same for a class with the constructor Layer(decl, options, ranks), or (decl, ranks).
  template <typename Layer>
  void add_layer(const std::string& name) {
    add_layer(name,
              [](const spec::LayerDecl& decl, const spec::ModelOptions& options,
                 layers::TensorParallel ranks) -> std::unique_ptr<layers::Layer> {
                if constexpr (std::is_constructible_v<Layer, const spec::LayerDecl&,
                                                      const spec::ModelOptions&, layers::TensorParallel>) {
                  return std::make_unique<Layer>(decl, options, ranks);
                } else {
                  return std::make_unique<Layer>(decl, ranks);
                }
              });
  }
  /// A model family: `model.family: NAME`. Its layers are of kinds that some library adds, or of base's.
  void add_family(spec::FamilyExtension family);
  void add_objective(Objective objective);

  /// All of it, with builders in the tables' layers.
  [[nodiscard]] spec::Extensions take();

 private:
  using Makers = std::map<std::string, std::shared_ptr<const layers::ExtensionMaker>>;
  std::shared_ptr<Makers> makers_ = std::make_shared<Makers>();  // shared with the families' tables
  std::vector<spec::FamilyExtension> families_;
  std::vector<Objective> objectives_;
};

}  // namespace chiliad

// Every library of extensions says what it was built with; `chiliad` refuses it elsewhere.
#ifdef CHILIAD_BUILDS_EXTENSION
#include "chiliad/extension/build_id.h"
extern "C" {
/// The one function that a library of extensions has.
__attribute__((visibility("default"))) void chiliad_register(chiliad::Registry& registry);
__attribute__((used, visibility("default"))) inline const char chiliad_extension_build_id[] =
    CHILIAD_BUILD_ID_MARK CHILIAD_BUILD_ID;
}
#endif
