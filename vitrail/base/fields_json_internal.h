// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fields in JSON.
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/fields.h"

namespace vitrail {

// The value as an integer, also if it is written as 12.0 or 1e3; none if it is no integer or exceeds 64 bits.
std::optional<int64_t> integer_of(const nlohmann::ordered_json& value);

// What null stands for.
enum class JsonNull : uint8_t {
  none,   // an optional without value, an empty text or list
  absent  // a field that is not given
};

// Reads one object.  Appends an Error for each problem to `problems`; its `where` is the field's name after `prefix`.
class JsonFieldReader : public Fields {
 public:
  using Json = nlohmann::ordered_json;
  JsonFieldReader(const Json& object, std::string prefix, std::vector<Error>& problems, JsonNull null = JsonNull::none);
  void accept(const std::string& name);  // a field that is read elsewhere
  // Records the keys that the description does not have.  `others`: names that the message lists before its fields.
  void finish(const std::vector<std::string>& others = {});

  using Fields::boolean, Fields::number, Fields::choice, Fields::size, Fields::object;
  void boolean(const Field& field, bool& value) override;
  void number(const Field& field, double& value, Range range = {}) override;
  void text(const Field& field, std::string& value) override;
  void choice(const Field& field, std::string& value, const std::vector<std::string>& allowed) override;
  void integers(const Field& field, std::vector<int64_t>& values, IntegerRange range = {}) override;
  void numbers(const Field& field, std::vector<double>& values, Range range = {}) override;
  void texts(const Field& field, std::vector<std::string>& values) override;
  void size(const Field& field, std::array<int64_t, 2>& values) override;
  void object(const Field& field, const std::function<void(Fields&)>& describe) override;
  bool is_set(const Field& field, bool current) override;
  bool reads() const override { return true; }

 protected:
  void visit_integer(const Field& field, int64_t& value, IntegerRange range) override;
  void reject(const Field& field, const std::string& expected) override;

 private:
  const Json* find(const char* name);  // null if the key is absent
  template <class T>
  void list(const Field& field, std::vector<T>& values, const std::string& expected,
            const std::function<std::optional<T>(const Json&)>& element);
  void add_problem(const std::string& name, const std::string& expected, const Json& got);

  const Json& object_;
  std::string prefix_;
  std::vector<Error>& problems_;
  JsonNull null_;
  std::vector<std::string> known_;  // the fields of the description, each once
};

// Writes one object, with the fields in the order of the description.
class JsonFieldWriter : public Fields {
 public:
  using Json = nlohmann::ordered_json;
  const Json& json() const { return json_; }

  using Fields::boolean, Fields::number, Fields::choice, Fields::size, Fields::object;
  void boolean(const Field& field, bool& value) override { json_[field.name] = value; }
  void number(const Field& field, double& value, Range) override { json_[field.name] = value; }
  void text(const Field& field, std::string& value) override { json_[field.name] = value; }
  void choice(const Field& field, std::string& value, const std::vector<std::string>&) override {
    json_[field.name] = value;
  }
  void integers(const Field& field, std::vector<int64_t>& values, IntegerRange) override { json_[field.name] = values; }
  void numbers(const Field& field, std::vector<double>& values, Range) override { json_[field.name] = values; }
  void texts(const Field& field, std::vector<std::string>& values) override { json_[field.name] = values; }
  void size(const Field& field, std::array<int64_t, 2>& values) override {
    const bool one = values[0] == values[1] && !field.nullable;  // timm takes ref_feat_shape as a list alone
    json_[field.name] = one ? Json(values[0]) : Json(values);
  }
  void object(const Field& field, const std::function<void(Fields&)>& describe) override;
  bool is_set(const Field& field, bool current) override;

 protected:
  void visit_integer(const Field& field, int64_t& value, IntegerRange) override { json_[field.name] = value; }
  void reject(const Field&, const std::string&) override {}

 private:
  Json json_ = Json::object();
};

template <class S>
nlohmann::ordered_json json_of_fields(void (*describe)(Fields&, S&), S values) {
  JsonFieldWriter writer;
  describe(writer, values);
  return writer.json();
}

}  // namespace vitrail
