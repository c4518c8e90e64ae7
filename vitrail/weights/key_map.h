// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the tensor names of another family of checkpoints become the native ones (timm's).  The form is that of a key
// map in docs/cli.md; the built-in families are files of the same form in key_maps/.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/weights/rearrange.h"

namespace vitrail::weights {

// One rule, checked.  `label` names it in errors ("huggingface_vit: rule 3 (\"…\")").
struct KeyRule {
  std::string from, to;
  bool drop = false;
  int64_t part = 0, parts = 1;  // the part-th of `parts` tensors joined along axis 0
  std::optional<Rearrange> rearrange;
  AxisSizes sizes;  // of axes that do not follow from the shape
  std::string label;
};

// What a key becomes.  `rule` is null where no rule matched; it lives as long as the map it came from, or a copy of it.
struct KeyMatch {
  std::string native;
  const KeyRule* rule = nullptr;
  bool dropped() const { return rule != nullptr && rule->drop; }
};

// Immutable; cheap to copy.  Rules are compiled when a map is parsed, so a built-in one costs nothing until chosen.
class KeyMap {
 public:
  // Throws Error naming `where` and the rule that is wrong.
  static KeyMap parse(const std::string& json, const std::string& where);
  // A built-in family.  Throws Error with the list of families when there is none of that name.
  static KeyMap builtin(const std::string& name);
  static std::vector<std::string> builtin_names();  // in the order in which detect() tries them
  // The first built-in family that recognises `keys`.  Throws Error that says what was seen.
  static KeyMap detect(const std::vector<std::string>& keys);
  // All families that recognise the keys, in order: detect() takes the first.
  static std::vector<std::string> matching(const std::vector<std::string>& keys);

  const std::string& name() const;
  bool recognises(const std::vector<std::string>& keys) const;  // all its `detect` keys are among them
  const std::vector<KeyRule>& rules() const;
  // The first rule that matches the whole key wins; without one the key keeps its name.
  KeyMatch match(const std::string& key) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace vitrail::weights
