// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/fields.h"

#include <charconv>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"

namespace vitrail {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

template <class Number, class Limits>
Number parsed(const std::string& where, std::string_view text, Limits range, const std::string& expected) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !(value >= range.min && value <= range.max))
    throw Error(where, expected, str("'", text, "'"));
  return value;
}

double parsed_number(const std::string& where, const std::string& text, Range range) {
  return parsed<double>(where, text, range, expected_number(range));
}

// "text, json or csv"
std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

class RowLister : public Fields {
 public:
  RowLister(std::string prefix, std::vector<FieldRow>& rows) : prefix_(std::move(prefix)), rows_(rows) {}

  using Fields::boolean, Fields::number, Fields::choice, Fields::size, Fields::object;
  void boolean(const Field& f, bool& value) override { add(f, "true or false", value ? "true" : "false"); }
  void number(const Field& f, double& value, Range range) override { add(f, expected_number(range), str(value)); }
  void text(const Field& f, std::string& value) override { add(f, "", value); }
  void choice(const Field& f, std::string& value, const std::vector<std::string>& allowed) override {
    add(f, alternatives(allowed), value);
  }
  void integers(const Field& f, std::vector<int64_t>& values, IntegerRange range) override {
    add(f, "each " + expected_integer(range), join(values, ","));
  }
  void numbers(const Field& f, std::vector<double>& values, Range range) override {
    add(f, "each " + expected_number(range), join(values, ","));
  }
  void texts(const Field& f, std::vector<std::string>& values) override { add(f, "", join(values, ",")); }
  void size(const Field& f, std::array<int64_t, 2>& values) override { add(f, "N or HEIGHT,WIDTH", join(values, ",")); }
  void object(const Field& field, const std::function<void(Fields&)>& describe) override {
    RowLister inner(prefix_ + field.name + ".", rows_);
    describe(inner);
  }
  bool is_set(const Field&, bool current) override {
    unset_ = !current;
    return true;
  }

 protected:
  void visit_integer(const Field& f, int64_t& value, IntegerRange range) override {
    add(f, expected_integer(range), value == INT64_MAX ? "" : str(value));
  }
  void reject(const Field&, const std::string&) override {}

 private:
  void add(const Field& field, const std::string& expected, const std::string& preset) {
    const bool unset = field.nullable && unset_;
    rows_.push_back(
        {prefix_ + field.name, field.option_name(), field.help, expected, unset ? "" : preset, field.changes_results});
  }

  std::string prefix_;
  std::vector<FieldRow>& rows_;
  bool unset_ = false;  // the optional that is described next
};

}  // namespace

std::string Field::option_name() const {
  std::string text = *option ? option : name;
  if (!*option) std::ranges::replace(text, '_', '-');
  return text;
}

std::string expected_integer(IntegerRange range) {
  if (range.max < INT64_MAX) return str("an integer from ", range.min, " to ", range.max);
  return range.min > INT64_MIN ? str("an integer of at least ", range.min) : "an integer";
}

std::string expected_number(Range range) {
  if (range.min <= std::numeric_limits<double>::lowest()) return "a number";
  if (range.max >= std::numeric_limits<double>::max()) return str("a number of at least ", range.min);
  return str("a number from ", range.min, " to ", range.max);
}

int64_t parse_integer(const std::string& where, std::string_view text, IntegerRange range) {
  return parsed<int64_t>(where, text, range, expected_integer(range));
}

void Fields::pair(const Field& field, std::array<double, 2>& values, Range range) {
  std::vector<double> list{values[0], values[1]};
  numbers(field, list, range);
  if (list.size() != 2) return reject(field, "an array of two numbers");
  values = {list[0], list[1]};
}

void Fields::pair(const Field& field, std::array<int64_t, 2>& values, int64_t min) {
  std::array<double, 2> list{static_cast<double>(values[0]), static_cast<double>(values[1])};
  pair(field, list, {static_cast<double>(min), 1e6});
  if (list[0] != std::floor(list[0]) || list[1] != std::floor(list[1]))
    return reject(field, "an array of two integers");
  values = {static_cast<int64_t>(list[0]), static_cast<int64_t>(list[1])};
}

std::optional<std::string> TextFieldReader::text_of(const std::string& option) {
  const std::vector<std::string> given = texts_of(option);
  if (given.size() > 1) throw Error(option, "one value", str(given.size()));
  return given.empty() ? std::nullopt : std::optional(given.front());
}

void TextFieldReader::boolean(const Field& field, bool& value) {
  const std::string option = field.option_name();
  const auto given = text_of(option);
  if (!given) return;
  const bool on = given->empty() || *given == "true" || *given == "1";
  if (!on && *given != "false" && *given != "0") throw Error(option, "true or false", "'" + *given + "'");
  value = on != option.starts_with("no-");
}

void TextFieldReader::visit_integer(const Field& field, int64_t& value, IntegerRange range) {
  const std::string option = field.option_name();
  if (const auto given = text_of(option)) value = parse_integer(option, *given, range);
}

void TextFieldReader::number(const Field& field, double& value, Range range) {
  const std::string option = field.option_name();
  if (const auto given = text_of(option)) value = parsed_number(option, *given, range);
}

void TextFieldReader::text(const Field& field, std::string& value) {
  if (const auto given = text_of(field.option_name())) value = *given;
}

void TextFieldReader::choice(const Field& field, std::string& value, const std::vector<std::string>& allowed) {
  const std::string option = field.option_name();
  const auto given = text_of(option);
  if (!given) return;
  if (std::ranges::find(allowed, *given) == allowed.end())
    throw Error(option, alternatives(allowed), "'" + *given + "'" + did_you_mean(*given, allowed));
  value = *given;
}

void TextFieldReader::integers(const Field& field, std::vector<int64_t>& values, IntegerRange range) {
  const std::string option = field.option_name();
  const auto given = text_of(option);
  if (!given) return;
  values.clear();
  for (const std::string& part : split(*given)) values.push_back(parse_integer(option, part, range));
}

void TextFieldReader::numbers(const Field& field, std::vector<double>& values, Range range) {
  const std::string option = field.option_name();
  const auto given = text_of(option);
  if (!given) return;
  values.clear();
  for (const std::string& part : split(*given)) values.push_back(parsed_number(option, part, range));
}

void TextFieldReader::texts(const Field& field, std::vector<std::string>& values) {
  if (std::vector<std::string> given = texts_of(field.option_name()); !given.empty()) values = std::move(given);
}

void TextFieldReader::size(const Field& field, std::array<int64_t, 2>& values) {
  std::vector<int64_t> list;
  integers(field, list, {1});
  if (list.empty()) return;
  if (list.size() > 2) return reject(field, "N or HEIGHT,WIDTH");
  values = {list.front(), list.back()};
}

void TextFieldReader::reject(const Field& field, const std::string& expected) {
  const std::string option = field.option_name();
  throw Error(option, expected, "'" + text_of(option).value_or("") + "'");
}

std::vector<FieldRow> rows_of(const std::function<void(Fields&)>& describe) {
  std::vector<FieldRow> rows;
  RowLister lister("", rows);
  describe(lister);
  return rows;
}

}  // namespace vitrail
