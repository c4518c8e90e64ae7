// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of JSON that may come from anywhere, each checked for its type and range.
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace vitrail::train {

inline constexpr int64_t kMaxCount = int64_t{1} << 53;  // a double holds it exactly
inline constexpr double kMaxNumber = std::numeric_limits<double>::max();

// Each function throws Error naming the value if it has another type or is out of range.
int64_t checked_count(const nlohmann::ordered_json& value, const std::string& name, int64_t min, int64_t max);
// null stands for a value that was not finite, and is returned as NaN.
double checked_number(const nlohmann::ordered_json& value, const std::string& name, double min, double max);
double checked_finite(const nlohmann::ordered_json& value, const std::string& name, double min = -kMaxNumber,
                      double max = kMaxNumber);

// The members of an object.  A missing member is the JSON library's exception.
class CheckedObject {
 public:
  CheckedObject(const nlohmann::ordered_json& object, std::string where) : object_(object), where_(std::move(where)) {}
  int64_t count(const std::string& name, int64_t max = kMaxCount, int64_t min = 0) const {
    return checked_count(object_.at(name), path(name), min, max);
  }
  double number(const std::string& name, double min = -kMaxNumber, double max = kMaxNumber) const {
    return checked_number(object_.at(name), path(name), min, max);
  }
  double finite(const std::string& name, double min = -kMaxNumber, double max = kMaxNumber) const {
    return checked_finite(object_.at(name), path(name), min, max);
  }
  bool boolean(const std::string& name) const { return object_.at(name).get<bool>(); }
  std::string text(const std::string& name) const { return object_.at(name).get<std::string>(); }

 private:
  std::string path(const std::string& name) const { return where_ + "." + name; }
  const nlohmann::ordered_json& object_;
  std::string where_;
};

// The elements of an array of `size` numbers.
class CheckedArray {
 public:
  CheckedArray(const nlohmann::ordered_json& array, std::string where, size_t size);
  int64_t count(size_t i, int64_t max = kMaxCount) const { return checked_count(array_.at(i), path(i), 0, max); }
  double number(size_t i, double min = -kMaxNumber, double max = kMaxNumber) const {
    return checked_number(array_.at(i), path(i), min, max);
  }
  double finite(size_t i) const { return checked_finite(array_.at(i), path(i)); }

 private:
  std::string path(size_t i) const { return where_ + "[" + std::to_string(i) + "]"; }
  const nlohmann::ordered_json& array_;
  std::string where_;
};

}  // namespace vitrail::train
