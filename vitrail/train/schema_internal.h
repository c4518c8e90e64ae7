// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named fields of plain structs, described once and then both read from JSON and written to it.
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

struct Range {
  double least, most;
};

// What a description calls, a line a field.  A reader sets the value where the field is there and notes what is wrong
// with it; a writer leaves the value alone.  In JSON null means "not set" for optional values.
class Schema {
 public:
  virtual ~Schema() = default;
  virtual void integer(const char* name, int64_t& value, int64_t least, int64_t most = INT64_MAX) = 0;
  virtual void integer(const char* name, std::optional<int64_t>& value, int64_t least) = 0;
  virtual void number(const char* name, double& value, Range range) = 0;
  virtual void number(const char* name, std::optional<double>& value, Range range) = 0;
  virtual void boolean(const char* name, bool& value) = 0;
  virtual void text(const char* name, std::string& value) = 0;
  virtual void choice(const char* name, std::string& value, const std::vector<std::string>& words) = 0;
  virtual void numbers(const char* name, std::vector<double>& values, Range range) = 0;
  virtual void texts(const char* name, std::vector<std::string>& values) = 0;
  virtual void object(const char* name, const std::function<void(Schema&)>& describe) = 0;
  // Whether an optional object is set: in the JSON for a reader, `now` for a writer (which then writes null).
  virtual bool is_set(const char* name, bool now) = 0;

  void pair(const char* name, std::array<double, 2>& values, Range range);
  void pair(const char* name, std::array<int64_t, 2>& values, int64_t least);

  template <class E>
  void choice(const char* name, E& value, const std::vector<std::pair<std::string, E>>& words) {
    std::string word;
    std::vector<std::string> spellings;
    for (const auto& [spelling, meaning] : words) {
      spellings.push_back(spelling);
      if (meaning == value) word = spelling;
    }
    choice(name, word, spellings);
    for (const auto& [spelling, meaning] : words) {
      if (spelling == word) value = meaning;
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
  // A pair that has not two numbers.
  virtual void wrong_length(const char* name) = 0;
};

// Reads one object; what is wrong goes to `problems`, a line each: "PATH: expected …, got …".
class SchemaReader : public Schema {
 public:
  SchemaReader(const Json& object, std::string path, std::vector<std::string>& problems);
  void finish();  // notes the keys that nobody asked for

  void integer(const char* name, int64_t& value, int64_t least, int64_t most) override;
  void integer(const char* name, std::optional<int64_t>& value, int64_t least) override;
  void number(const char* name, double& value, Range range) override;
  void number(const char* name, std::optional<double>& value, Range range) override;
  void boolean(const char* name, bool& value) override;
  void text(const char* name, std::string& value) override;
  void choice(const char* name, std::string& value, const std::vector<std::string>& words) override;
  void numbers(const char* name, std::vector<double>& values, Range range) override;
  void texts(const char* name, std::vector<std::string>& values) override;
  void object(const char* name, const std::function<void(Schema&)>& describe) override;
  bool is_set(const char* name, bool now) override;

 protected:
  void wrong_length(const char* name) override;

 private:
  const Json* find(const char* name);  // null where the key is absent
  std::string path(const std::string& name) const;
  void problem(const std::string& name, const std::string& expected, const Json& got);

  const Json& object_;
  std::string path_;
  std::vector<std::string>& problems_;
  std::vector<std::string> known_;
};

// Writes one object, fields in the order of the description.
class SchemaWriter : public Schema {
 public:
  const Json& json() const { return json_; }

  void integer(const char* name, int64_t& value, int64_t, int64_t) override { json_[name] = value; }
  void integer(const char* name, std::optional<int64_t>& value, int64_t) override { put(name, value); }
  void number(const char* name, double& value, Range) override { json_[name] = value; }
  void number(const char* name, std::optional<double>& value, Range) override { put(name, value); }
  void boolean(const char* name, bool& value) override { json_[name] = value; }
  void text(const char* name, std::string& value) override { json_[name] = value; }
  void choice(const char* name, std::string& value, const std::vector<std::string>&) override { json_[name] = value; }
  void numbers(const char* name, std::vector<double>& values, Range) override { json_[name] = values; }
  void texts(const char* name, std::vector<std::string>& values) override { json_[name] = values; }
  void object(const char* name, const std::function<void(Schema&)>& describe) override;
  bool is_set(const char* name, bool now) override;

 protected:
  void wrong_length(const char*) override {}

 private:
  template <class T>
  void put(const char* name, const std::optional<T>& value) {
    json_[name] = value ? Json(*value) : Json(nullptr);
  }
  Json json_ = Json::object();
};

}  // namespace vitrail::train
