#include "chiliad/spec/detail/yaml_tree.h"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/spec/detail/source_text.h"

namespace chiliad::spec::detail {
namespace {

constexpr size_t kMaxDepth =
    16;  // a run file needs three: file, section, list; and two more a group of sources

std::string place_at(const std::string& name, const YAML::Mark& mark) {
  return fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
}

// Builds the tree from the parser's events: an alias is seen (and refused) before it is expanded, and every
// key keeps its place, which yaml-cpp's own nodes do not offer.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& name) : name_(name) {}

  [[nodiscard]] YamlNode& root() { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++num_documents_ > 1)
      refuse(mark, "expected one document, got a second one. Remove the line \"---\"");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, YamlNode{});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "expected a value, got an alias (*). Aliases are not supported: write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark, tag);
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.text = value;
    node.quoted = tag == "!";
    add(mark, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    std::optional<YamlNode> key;               // of a map, while its value is awaited
    std::map<std::string, std::string> known;  // keys so far and their places
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& message) const {
    throw InvalidInput(place_at(name_, mark), message);
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor)
      refuse(mark, "expected a value, got an anchor (&). Anchors are not supported");
  }
  [[noreturn]] void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    refuse(mark,
           fmt::format("expected a value, got the tag {}. Tags are not supported: remove it", quote(tag)));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    refuse_anchor(mark, anchor);
    if (tag != "?" && !tag.empty()) refuse_tag(mark, tag);
    if (stack_.size() >= kMaxDepth)
      refuse(mark, fmt::format("expected at most {} levels, got more", kMaxDepth));
    Frame frame;
    frame.node.kind = kind;
    frame.node.place = place_at(name_, mark);
    if (!stack_.empty() && stack_.back().node.kind == YamlNode::Kind::kMap && !stack_.back().key) {
      refuse(mark, "expected a key, got a list or a map");
    }
    stack_.push_back(std::move(frame));
  }

  void close() {
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    attach(std::move(node));
  }

  void add(const YAML::Mark& mark, YamlNode node) {
    node.place = place_at(name_, mark);
    const bool is_key =
        !stack_.empty() && stack_.back().node.kind == YamlNode::Kind::kMap && !stack_.back().key;
    if (is_key) {
      add_key(mark, std::move(node));
    } else {
      attach(std::move(node));
    }
  }

  void add_key(const YAML::Mark& mark, YamlNode node) {
    Frame& frame = stack_.back();
    if (node.kind != YamlNode::Kind::kScalar) refuse(mark, "expected a key, got nothing");
    const auto [earlier, is_new] = frame.known.emplace(node.text, node.place);
    if (!is_new) {
      refuse(mark,
             fmt::format("key {} stands twice, first at {}. Remove one", quote(node.text), earlier->second));
    }
    frame.key = std::move(node);
  }

  void attach(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.key) {
      node.key = std::move(frame.key->text);
      node.key_place = std::move(frame.key->place);
      // yaml-cpp places a missing value at the next token, maybe lines below.
      if (node.kind == YamlNode::Kind::kNull) node.place = node.key_place;
      frame.key.reset();
    }
    frame.node.items.push_back(std::move(node));
  }

  const std::string& name_;
  YamlNode root_;
  std::vector<Frame> stack_;
  int num_documents_ = 0;
};

}  // namespace

YamlNode parse_yaml(std::string_view text, const std::string& name) {
  check_source_text(text, name);
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(name);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw InvalidInput(place_at(name, error.mark), fmt::format("expected YAML, got: {}", error.msg));
  }
  return std::move(builder.root());
}

}  // namespace chiliad::spec::detail
