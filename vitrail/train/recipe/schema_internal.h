// SPDX-License-Identifier: Apache-2.0
#pragma once
// Schemas: a struct's JSON fields are described once, for both reading and writing.
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace vitrail::train {

using Json = nlohmann::ordered_json;

// An inclusive range of values.
struct Range {
  double min, max;
};

// The visitor that a description calls once per field.  A reader assigns the value if the field is present and valid,
// and records a problem if it is invalid.  A writer only reads the value.  In JSON, null stands for an unset optional
// value.
class Schema {
 public:
  virtual ~Schema() = default;
  virtual void integer(const char* name, int64_t& value, int64_t min, int64_t max = INT64_MAX) = 0;
  virtual void integer(const char* name, std::optional<int64_t>& value, int64_t min) = 0;
  virtual void number(const char* name, double& value, Range range) = 0;
  virtual void number(const char* name, std::optional<double>& value, Range range) = 0;
  virtual void boolean(const char* name, bool& value) = 0;
  virtual void string(const char* name, std::string& value) = 0;
  virtual void choice(const char* name, std::string& value, const std::vector<std::string>& allowed) = 0;
  virtual void number_list(const char* name, std::vector<double>& values, Range range) = 0;
  virtual void string_list(const char* name, std::vector<std::string>& values) = 0;
  virtual void object(const char* name, const std::function<void(Schema&)>& describe) = 0;
  // Returns whether an optional object is set: for a reader in the JSON, or `current` if the field is absent; for a
  // writer `current`.
  virtual bool is_set(const char* name, bool current) = 0;

  void pair(const char* name, std::array<double, 2>& values, Range range);
  void pair(const char* name, std::array<int64_t, 2>& values, int64_t min);

  // A choice of enumerators by their names.
  template <class E>
  void choice(const char* name, E& value, const std::vector<std::pair<std::string, E>>& allowed) {
    std::string selected;
    std::vector<std::string> names;
    for (const auto& [enumerator_name, enumerator] : allowed) {
      names.push_back(enumerator_name);
      if (enumerator == value) selected = enumerator_name;
    }
    choice(name, selected, names);
    for (const auto& [enumerator_name, enumerator] : allowed) {
      if (enumerator_name == selected) value = enumerator;
    }
  }

  template <class T>
  void optional(const char* name, std::optional<T>& value, void (*describe)(Schema&, T&)) {
    if (!is_set(name, value.has_value())) {
      value.reset();
      return;
    }
    if (!value) value.emplace();
    object(name, [&](Schema& inner) { describe(inner, *value); });
  }

 protected:
  // Called for a pair that is not what is expected.
  virtual void wrong_pair(const char* name, const std::string& expected) = 0;
};

// Reads one object.  Appends a line per problem to `problems`: "PATH: expected …, got …".
class SchemaReader : public Schema {
 public:
  SchemaReader(const Json& object, std::string path, std::vector<std::string>& problems);
  void accept(const std::string& name);  // a field that is read elsewhere
  void finish();                         // records the keys that the description does not have

  void integer(const char* name, int64_t& value, int64_t min, int64_t max) override;
  void integer(const char* name, std::optional<int64_t>& value, int64_t min) override;
  void number(const char* name, double& value, Range range) override;
  void number(const char* name, std::optional<double>& value, Range range) override;
  void boolean(const char* name, bool& value) override;
  void string(const char* name, std::string& value) override;
  void choice(const char* name, std::string& value, const std::vector<std::string>& allowed) override;
  void number_list(const char* name, std::vector<double>& values, Range range) override;
  void string_list(const char* name, std::vector<std::string>& values) override;
  void object(const char* name, const std::function<void(Schema&)>& describe) override;
  bool is_set(const char* name, bool current) override;

 protected:
  void wrong_pair(const char* name, const std::string& expected) override;

 private:
  const Json* find(const char* name);  // null if the key is absent
  std::string path(const std::string& name) const;
  void add_problem(const std::string& name, const std::string& expected, const Json& got);

  const Json& object_;
  std::string path_;  // path of object_ in the document
  std::vector<std::string>& problems_;
  std::vector<std::string> known_;  // the fields of the description, each once
};

// Writes one object, with the fields in the order of the description.
class SchemaWriter : public Schema {
 public:
  const Json& json() const { return json_; }

  void integer(const char* name, int64_t& value, int64_t, int64_t) override { json_[name] = value; }
  void integer(const char* name, std::optional<int64_t>& value, int64_t) override { put(name, value); }
  void number(const char* name, double& value, Range) override { json_[name] = value; }
  void number(const char* name, std::optional<double>& value, Range) override { put(name, value); }
  void boolean(const char* name, bool& value) override { json_[name] = value; }
  void string(const char* name, std::string& value) override { json_[name] = value; }
  void choice(const char* name, std::string& value, const std::vector<std::string>&) override { json_[name] = value; }
  void number_list(const char* name, std::vector<double>& values, Range) override { json_[name] = values; }
  void string_list(const char* name, std::vector<std::string>& values) override { json_[name] = values; }
  void object(const char* name, const std::function<void(Schema&)>& describe) override;
  bool is_set(const char* name, bool current) override;

 protected:
  void wrong_pair(const char*, const std::string&) override {}

 private:
  template <class T>
  void put(const char* name, const std::optional<T>& value) {
    json_[name] = value ? Json(*value) : Json(nullptr);
  }
  Json json_ = Json::object();
};

}  // namespace vitrail::train
