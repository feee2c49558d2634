#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/options/model.h"
#include "chiliad/spec/options/objective.h"

namespace chiliad::spec {

/// Value of an option that an extension declares.
using OwnValue = std::variant<int64_t, double, bool, std::string>;

/// One option that a family adds to section model, or an objective to section objective.
struct OwnOption {
  std::string name;
  OwnValue value;                         ///< the default; its type says how the run file is read
  double min = 0.0;                       ///< of numbers, allowed
  double max = 1e9;                       ///< of numbers, allowed
  std::vector<std::string> choices = {};  ///< of texts; empty: any text
  std::string help = {};
};

/// What the run file says for them; each throws InternalError for a name that is not declared with that type.
class OwnValues {
 public:
  [[nodiscard]] int64_t whole(const std::string& name) const;
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] bool flag(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const;

  std::map<std::string, OwnValue> values;
};

/// A model family that an extension brings: it trains on what `base` trains on, takes the options of base,
/// and its layers read and write the carry as those of base do at both ends.
struct FamilyExtension {
  std::string name;
  std::string base;  ///< a family of ModelOptions
  std::vector<OwnOption> options;
  /// The layers. options.family is `base`: base_table(options) has its layers, to be kept, changed or added
  /// to. Throws InvalidInput for options that do not fit.
  std::function<LayerTable(const ModelOptions& options, const OwnValues& own)> table;
};

/// A loss that an extension brings. Paths, times and samplers are those of `base`, and so are its options.
/// The torch half derives from it (objective/loss_extension.h).
struct ObjectiveExtension {
  ObjectiveExtension() = default;
  ObjectiveExtension(const ObjectiveExtension&) = default;
  ObjectiveExtension& operator=(const ObjectiveExtension&) = default;
  virtual ~ObjectiveExtension() = default;

  std::string name;
  std::string base = "flow";  ///< flow or ddpm
  std::vector<OwnOption> options;
};

/// Makes the layers of a kind; the torch half derives from it (layers/layer_maker.h). Null where a process
/// has no torch.
struct LayerMaker {
  LayerMaker() = default;
  LayerMaker(const LayerMaker&) = delete;
  LayerMaker& operator=(const LayerMaker&) = delete;
  virtual ~LayerMaker() = default;
};

/// What LayerDecl::extension holds: the kind of an extension's layer, and its work beside the products with
/// weights (LayerDecl's image_products, text_products, item_products), as numbers, so that processes without
/// the extension know it.
struct ExtensionLayer {
  std::string kind;
  /// Widths of attention: 4 FLOPs for each pair of tokens and value of the width.
  double image_image_width = 0.0;
  double image_text_width = 0.0;
  double text_text_width = 0.0;
  /// Values that are read or written, of one image token, text token and item.
  double image_values = 0.0;
  double text_values = 0.0;
  double item_values = 0.0;
  double launches = 1.0;                    ///< operators
  std::shared_ptr<const LayerMaker> maker;  ///< shared by all declarations of the kind; set by the registry
};

/// What ModelOptions::extension holds.
struct FamilyUse {
  std::shared_ptr<const FamilyExtension> what;  ///< shared by all runs that use it
  std::string name;                             ///< as the run file has it
  OwnValues own;
};
/// What ObjectiveOptions::extension holds.
struct ObjectiveUse {
  std::shared_ptr<const ObjectiveExtension> what;  ///< shared by all runs that use it
  std::string name;
  OwnValues own;
};

/// The layers of options.family, whatever extension is in use.
[[nodiscard]] LayerTable base_table(const ModelOptions& options);
/// An extension's layer without parameters, with the sizes of `options`. `name` is the prefix of its
/// parameters.
[[nodiscard]] LayerDecl extension_layer(const std::string& kind, const std::string& name,
                                        const std::string& component, const ModelOptions& options);
/// What the rows of a weight's input are.
enum class TokensOf { kImage, kText, kItem };
/// How a linear layer starts and is cut.
struct LinearParams {
  Init init = Init::kXavierUniform;
  Split split =
      Split::kNone;   ///< kRows: by outputs, as gather_linear takes it; kColumns: by inputs, linear_scatter
  int64_t parts = 1;  ///< kRows: fused tensors, each cut by itself
};
/// Adds `<layer>.<name>.weight` [out, in] and `.bias` [out], and their products to the layer's work.
void add_linear_params(LayerDecl& layer, const std::string& name, int64_t in, int64_t out, TokensOf rows,
                       const LinearParams& params = {});
/// Changes work that extension_layer left at zero.
[[nodiscard]] ExtensionLayer& costs_of(LayerDecl& layer);

[[nodiscard]] Work extension_work(const LayerDecl& layer, const BatchShape& shape);

/// All that the libraries of a run file bring.
struct Extensions {
  std::vector<std::shared_ptr<const FamilyExtension>> families;
  std::vector<std::shared_ptr<const ObjectiveExtension>> objectives;
};

/// A run file that names libraries.
struct ExtensionRequest {
  std::vector<std::string> libraries;  ///< absolute paths
  std::string_view text;               ///< the run file
  std::string name;                    ///< that of the file, in messages
  std::filesystem::path folder;        ///< which its paths are relative to
  std::vector<std::string> overrides;
};
using ExtensionSource = std::function<Extensions(const ExtensionRequest&)>;

/// Says how this process learns what libraries bring: a worker loads them, the command line asks a worker.
/// main calls it once, before threads; a process that does not refuses run files with extensions.
void set_extension_source(ExtensionSource source);

/// What the libraries bring. Throws InvalidInput where they cannot be used.
[[nodiscard]] Extensions find_extensions(const ExtensionRequest& request);

}  // namespace chiliad::spec
