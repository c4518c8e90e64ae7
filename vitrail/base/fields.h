// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fields: what an options struct has, said once.  A function describes each field by its name, help, member and range:
//
//   void describe(Fields& fields, Limits& limits) {
//     fields.integer({"headers", "lines of a header"}, limits.headers, 1);
//     fields.number({"idle_seconds", "between two requests"}, limits.idle_seconds, {1e-3, 1e6});
//   }
//
// Visitors of descriptions read and write JSON (fields_json_internal.h), read texts (TextFieldReader: parameters of a
// request, "name=value"), add options to a command (apps/vitrail/shell/field_options.h), and list the fields
// (rows_of()).
#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace vitrail {

struct Field {
  Field(const char* in_json, const char* one_line = "", const char* as_option = "")  // NOLINT: "name" is a field
      : name(in_json), help(one_line), option(as_option) {}

  const char* name;  // in JSON: "final_norm"
  const char* help;  // one line
  // The name of the option and of the parameter: "" for `name` with hyphens.  A boolean's "no-norm" stands for false.
  const char* option;
  bool changes_results = true;
  bool nullable = false;  // the value of an optional
  bool unset = false;     // that has none

  Field without_effect() const {  // on results
    Field field = *this;
    field.changes_results = false;
    return field;
  }
  std::string option_name() const;  // "final-norm"
};

// Inclusive ranges of values.
struct Range {
  double min = -std::numeric_limits<double>::max(), max = std::numeric_limits<double>::max();
  bool operator==(const Range&) const = default;
};
struct IntegerRange {
  int64_t min = INT64_MIN, max = INT64_MAX;
  bool operator==(const IntegerRange&) const = default;
};
std::string expected_integer(IntegerRange range);  // "an integer from 1 to 9"
std::string expected_number(Range range);          // "a number of at least 0"

constexpr Range kAboveZero{std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()};

// The member of a field, and the values that it takes.
struct FieldValue {
  std::variant<bool*, int64_t*, double*, std::string*, std::vector<int64_t>*, std::vector<double>*,
               std::vector<std::string>*, std::array<int64_t, 2>*>
      member;
  IntegerRange integers = {};
  Range numbers = {};
  std::vector<std::string> allowed = {};  // texts; empty: any

  bool fits() const;                                   // false for a number outside its range
  bool is_list() const { return member.index() > 3; }  // the last four
  bool is_any_texts() const { return std::holds_alternative<std::vector<std::string>*>(member) && allowed.empty(); }
};

// The value as a table and the help show it; empty for none, such as a number outside its range.
std::string preset_of(const Field& field, const FieldValue& value);

// The visitor that a description calls once per field.  A reader assigns a value that is given and valid; other
// visitors change nothing.
class Fields {
 public:
  virtual ~Fields() = default;

  void boolean(const Field& field, bool& value) { visit(field, {&value}); }
  template <std::integral T>
  void integer(const Field& field, T& value, int64_t min = INT64_MIN, int64_t max = INT64_MAX) {
    auto number = static_cast<int64_t>(value);
    if (std::cmp_less(std::numeric_limits<T>::max(), max)) max = static_cast<int64_t>(std::numeric_limits<T>::max());
    visit(field, {&number, {min, max}});
    value = static_cast<T>(number);
  }
  void number(const Field& field, double& value, Range range = {}) { visit(field, {&value, {}, range}); }
  void text(const Field& field, std::string& value) { visit(field, {&value}); }
  void choice(const Field& field, std::string& value, const std::vector<std::string>& allowed) {
    visit(field, {&value, {}, {}, allowed});
  }
  // A choice of enumerators by their names; the first name of one is written.
  template <class E>
  requires std::is_enum_v<E>
  void choice(const Field& field, E& value, const std::vector<std::pair<std::string, E>>& allowed) {
    std::string selected;
    std::vector<std::string> names;
    for (const auto& [name, enumerator] : allowed) names.push_back(name);
    const auto current = std::ranges::find(allowed, value, &std::pair<std::string, E>::second);
    if (current != allowed.end()) selected = current->first;
    choice(field, selected, names);
    const auto chosen = std::ranges::find(allowed, selected, &std::pair<std::string, E>::first);
    if (chosen != allowed.end()) value = chosen->second;
  }

  void integers(const Field& field, std::vector<int64_t>& values, IntegerRange range = {}) {
    visit(field, {&values, range});
  }
  void numbers(const Field& field, std::vector<double>& values, Range range = {}) {
    visit(field, {&values, {}, range});
  }
  void texts(const Field& field, std::vector<std::string>& values) { visit(field, {&values}); }
  void choices(const Field& field, std::vector<std::string>& values, const std::vector<std::string>& allowed) {
    visit(field, {&values, {}, {}, allowed});
  }
  void pair(const Field& field, std::array<double, 2>& values, Range range);
  void pair(const Field& field, std::array<int64_t, 2>& values, int64_t min);
  // [height, width], or one for both
  void size(const Field& field, std::array<int64_t, 2>& values) { visit(field, {&values, {1}}); }

  // null in JSON stands for an optional without value.
  template <std::integral T>
  void integer(const Field& field, std::optional<T>& value, int64_t min = INT64_MIN, int64_t max = INT64_MAX) {
    if_set(field, value, [&](const Field& nullable, T& inner) { integer(nullable, inner, min, max); });
  }
  void number(const Field& field, std::optional<double>& value, Range range = {}) {
    if_set(field, value, [&](const Field& nullable, double& inner) { number(nullable, inner, range); });
  }
  void boolean(const Field& field, std::optional<bool>& value) {
    if_set(field, value, [&](const Field& nullable, bool& inner) { boolean(nullable, inner); });
  }
  void size(const Field& field, std::optional<std::array<int64_t, 2>>& value) {
    if_set(field, value, [&](const Field& nullable, std::array<int64_t, 2>& inner) { size(nullable, inner); });
  }
  template <class T>
  void object(const Field& field, std::optional<T>& value, void (*describe)(Fields&, T&)) {
    if_set(field, value, [&](const Field& nullable, T& inner) {
      object(nullable, [&](Fields& fields) { describe(fields, inner); });
    });
  }

  virtual void object(const Field& field, const std::function<void(Fields&)>& describe) = 0;
  // Whether an optional has a value: for a reader the given one, or `current` if none is given; else `current`.
  virtual bool is_set(const Field& field, bool current) = 0;
  // Whether values are assigned: a description may read names that it never writes.
  virtual bool reads() const { return false; }

 protected:
  virtual void visit(const Field& field, const FieldValue& value) = 0;
  // Called for a pair that is not what is expected.
  virtual void reject(const Field&, const std::string&) {}

 private:
  template <class T, class Visit>
  void if_set(Field field, std::optional<T>& value, const Visit& visit) {
    if (!is_set(field, value.has_value())) return value.reset();
    field.nullable = true;
    field.unset = !value.has_value();
    T inner = value.value_or(T{});
    visit(field, inner);
    if (reads()) value = std::move(inner);
  }
};

// Reads the texts of options or parameters.  Throws Error naming the option of a text that is not as described.  Lists
// have commas between their values, and objects are not read.
class TextFieldReader : public Fields {
 public:
  using Fields::object;
  void object(const Field&, const std::function<void(Fields&)>&) override {}
  bool is_set(const Field& field, bool current) override { return current || !texts_of(field.option_name()).empty(); }
  bool reads() const override { return true; }

 protected:
  // All texts that are given for an option, in their order.
  virtual std::vector<std::string> texts_of(const std::string& option) = 0;

  // The text of an option that is given at most once.
  std::optional<std::string> text_of(const std::string& option);

  void visit(const Field& field, const FieldValue& value) override;
  void reject(const Field& field, const std::string& expected) override;
};

// An integer in decimal digits, within the range.  Throws Error naming `where` for other text.
int64_t parse_integer(const std::string& where, std::string_view text, IntegerRange range = {});

// Sets one field from its texts.  Returns whether the description has an option of this name.
bool set_field(const std::function<void(Fields&)>& describe, const std::string& option,
               const std::vector<std::string>& texts);
template <class S>
bool set_field(void (*describe)(Fields&, S&), S& values, const std::string& option,
               const std::vector<std::string>& texts) {
  return set_field([&](Fields& fields) { describe(fields, values); }, option, texts);
}

// Throws Error naming the first field whose number is outside its range.
void check_fields(const std::function<void(Fields&)>& describe);
template <class S>
void check_fields(void (*describe)(Fields&, S&), S values) {
  check_fields([&](Fields& fields) { describe(fields, values); });
}

// What a table of a struct's fields shows of one.
struct FieldRow {
  std::string name;    // "color_jitter.hue"
  std::string option;  // "hue"
  std::string help;
  std::string expected;  // "a number from 0 to 0.5"; empty for text
  std::string preset;    // the value of the struct; as preset_of(); empty for an optional without one
  bool changes_results = true;
};
std::vector<FieldRow> rows_of(const std::function<void(Fields&)>& describe);
template <class S>
std::vector<FieldRow> rows_of(void (*describe)(Fields&, S&), S values = {}) {
  return rows_of([&](Fields& fields) { describe(fields, values); });
}

}  // namespace vitrail
