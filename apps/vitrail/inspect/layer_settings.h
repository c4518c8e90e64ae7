// SPDX-License-Identifier: Apache-2.0
#pragma once
// The settings of `inspect layer:NAME --set NAME=VALUE`.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace vitrail::app {

// The functions below return a setting's value, or the default.  They throw Error for a value of another kind.
class LayerSettings {
 public:
  explicit LayerSettings(const std::vector<std::string>& assignments);  // throws Error unless each is NAME=VALUE

  int64_t integer(const std::string& name, int64_t default_value, int64_t min = 1);
  double number(const std::string& name, double default_value);
  bool flag(const std::string& name, bool default_value);
  std::string text(const std::string& name, const std::string& default_value);

  // Throws Error for a setting that the layer did not read.
  void check(const std::string& layer) const;
  // "dim=512 num_heads=8", all that were read, in that order.
  std::string summary() const;

 private:
  const std::string* find(const std::string& name, const std::string& default_text);

  std::map<std::string, std::string> given_;
  std::vector<std::string> names_, read_;  // read_: "NAME=VALUE"
};

}  // namespace vitrail::app
