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

  using Fields::object;
  void object(const Field& field, const std::function<void(Fields&)>& describe) override;
  bool is_set(const Field& field, bool current) override;
  bool reads() const override { return true; }

 protected:
  void visit(const Field& field, const FieldValue& value) override;
  void reject(const Field& field, const std::string& expected) override;

 private:
  const Json* find(const char* name);  // null if the key is absent
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

  using Fields::object;
  void object(const Field& field, const std::function<void(Fields&)>& describe) override;
  bool is_set(const Field& field, bool current) override;

 protected:
  void visit(const Field& field, const FieldValue& value) override;

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
