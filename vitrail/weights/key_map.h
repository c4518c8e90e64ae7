// SPDX-License-Identifier: Apache-2.0
#pragma once
// Key maps: rules that translate the tensor names and layouts of other libraries' checkpoints to the native ones, which
// are timm's.  docs/models.md describes the JSON form; the built-in families are files of this form in key_maps/.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/weights/rearrange.h"

namespace vitrail::weights {

// One validated rule.  `label` names it in errors ("huggingface_vit: rule 3 (\"…\")").
struct KeyRule {
  std::string from, to;
  bool drop = false;
  int64_t part = 0, parts = 1;  // the source is part `part` of `parts` that are concatenated along axis 0
  // The native tensor is rows [first, last) of the source when it is cut into `cuts` equal parts along axis 0.  The
  // rules of the source's other parts follow this one.
  int64_t first = 0, last = 1, cuts = 1;
  int64_t skip = 0;  // rows of axis 0 of the source that are left out at its beginning
  int64_t rows = 0;  // rows that are read behind them; 0: all
  std::optional<Rearrange> rearrange;
  AxisSizes sizes;  // sizes of axes that cannot be inferred from the shape
  std::string label;
};

// The native name of a key.  `rule` is null if no rule matched; it is valid while the map or a copy of it exists.
struct KeyMatch {
  std::string native;
  const KeyRule* rule = nullptr;
  bool dropped() const { return rule != nullptr && rule->drop; }
};

// Immutable and cheap to copy.  Rules are compiled when a map is parsed; built-in maps are parsed on use.
class KeyMap {
 public:
  // Throws Error naming `where` and the invalid rule.
  static KeyMap parse(const std::string& json, const std::string& where);
  // A built-in family.  Throws Error with the list of families if there is none with that name.
  static KeyMap builtin(const std::string& name);
  static std::vector<std::string> builtin_names();  // in the order of detection
  // The first built-in family that recognises `keys`.  Throws Error with some of the keys if there is none.
  static KeyMap detect(const std::vector<std::string>& keys);

  const std::string& name() const;
  const std::string& about() const;  // the library or text that the names are from; may be empty
  // A JSON object: fields of the model that all models of the family have.  Those of config.json have precedence.
  const std::string& model_args() const;                        // may be empty
  bool recognises(const std::vector<std::string>& keys) const;  // whether all its `detect` keys are present
  const std::vector<KeyRule>& rules() const;
  // The first rule that matches the complete key applies.  A key that no rule matches keeps its name.  Throws Error if
  // the new name has more than 4,096 characters.
  KeyMatch match(const std::string& key) const;
  // The native names of all tensors that a source tensor is split into: one, unless its rule has "split".
  std::vector<KeyMatch> match_all(const std::string& key) const;
  // The native path of a module: by the map's "modules", else by the rule for its weight.  Null rule: none.
  KeyMatch match_module(const std::string& path) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace vitrail::weights
