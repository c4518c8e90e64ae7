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

// "text, json or csv"
std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

std::string expected_of(const FieldValue& value) {
  struct Visitor {
    const FieldValue& field;
    std::string operator()(const bool*) { return "true or false"; }
    std::string operator()(const int64_t*) { return expected_integer(field.integers); }
    std::string operator()(const double*) { return expected_number(field.numbers); }
    std::string operator()(const std::string*) { return alternatives(field.allowed); }
    std::string operator()(const std::vector<int64_t>*) { return "each " + expected_integer(field.integers); }
    std::string operator()(const std::vector<double>*) { return "each " + expected_number(field.numbers); }
    std::string operator()(const std::vector<std::string>*) { return alternatives(field.allowed); }
    std::string operator()(const std::array<int64_t, 2>*) { return "N or HEIGHT,WIDTH in pixels"; }
  };
  return std::visit(Visitor{value}, value.member);
}

struct PresetText {
  std::string operator()(const bool* on) const { return *on ? "true" : "false"; }
  std::string operator()(const int64_t* number) const { return *number < INT64_MAX ? str(*number) : ""; }
  std::string operator()(const double* number) const { return str(*number); }
  std::string operator()(const std::string* text) const { return *text; }
  std::string operator()(const auto* values) const { return join(*values, ","); }
};

class RowLister : public Fields {
 public:
  RowLister(std::string prefix, std::vector<FieldRow>& rows) : prefix_(std::move(prefix)), rows_(rows) {}

  using Fields::object;
  void object(const Field& field, const std::function<void(Fields&)>& describe) override {
    RowLister inner(prefix_ + field.name + ".", rows_);
    describe(inner);
  }
  bool is_set(const Field&, bool) override { return true; }

 protected:
  void visit(const Field& field, const FieldValue& value) override {
    rows_.push_back({prefix_ + field.name, field.option_name(), field.help, expected_of(value), preset_of(field, value),
                     field.changes_results});
  }

 private:
  std::string prefix_;
  std::vector<FieldRow>& rows_;
};

// Each reads a text, and throws Error naming the option `where` if it is not as described.
void read_text(const std::string& where, const std::string& text, const FieldValue&, bool& to) {
  const bool on = text.empty() || text == "true" || text == "1";
  if (!on && text != "false" && text != "0") throw Error(where, "true or false", "'" + text + "'");
  to = on != where.starts_with("no-");
}
void read_text(const std::string& where, const std::string& text, const FieldValue& value, int64_t& to) {
  to = parse_integer(where, text, value.integers);
}
void read_text(const std::string& where, const std::string& text, const FieldValue& value, double& to) {
  to = parsed<double>(where, text, value.numbers, expected_number(value.numbers));
}
void read_text(const std::string& where, const std::string& text, const FieldValue& value, std::string& to) {
  const std::vector<std::string>& allowed = value.allowed;
  if (!allowed.empty() && std::ranges::find(allowed, text) == allowed.end())
    throw Error(where, alternatives(allowed), "'" + text + "'" + did_you_mean(text, allowed));
  to = text;
}
template <class T>
void read_text(const std::string& where, const std::string& text, const FieldValue& value, std::vector<T>& to) {
  std::vector<T> values;
  for (const std::string& part : split(text)) read_text(where, part, value, values.emplace_back());
  to = std::move(values);
}
void read_text(const std::string& where, const std::string& text, const FieldValue& value, std::array<int64_t, 2>& to) {
  std::vector<int64_t> sides;
  try {
    read_text(where, text, value, sides);
  } catch (const Error&) {
    sides.clear();
  }
  if (sides.empty() || sides.size() > 2) throw Error(where, expected_of(value), "'" + text + "'");
  to = {sides.front(), sides.back()};
}

}  // namespace

std::string preset_of(const Field& field, const FieldValue& value) {
  return !field.unset && value.fits() ? std::visit(PresetText{}, value.member) : "";
}

bool FieldValue::fits() const {
  const auto within = [](auto number, auto range) { return number >= range.min && number <= range.max; };
  if (const auto* integer = std::get_if<int64_t*>(&member)) return within(**integer, integers);
  if (const auto* number = std::get_if<double*>(&member)) return within(**number, numbers);
  return true;
}

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
  if (range == kAboveZero) return "a number above 0";
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

void TextFieldReader::visit(const Field& field, const FieldValue& value) {
  const std::string option = field.option_name();
  if (value.is_any_texts()) {
    std::vector<std::string> given = texts_of(option);
    if (!given.empty()) *std::get<std::vector<std::string>*>(value.member) = std::move(given);
  } else if (const auto given = text_of(option)) {
    std::visit([&](auto* member) { read_text(option, *given, value, *member); }, value.member);
  }
}

void TextFieldReader::reject(const Field& field, const std::string& expected) {
  const std::string option = field.option_name();
  throw Error(option, expected, "'" + text_of(option).value_or("") + "'");
}

bool set_field(const std::function<void(Fields&)>& describe, const std::string& option,
               const std::vector<std::string>& texts) {
  struct One : TextFieldReader {
    One(const std::string& wanted, const std::vector<std::string>& given) : option(wanted), texts(given) {}
    std::vector<std::string> texts_of(const std::string& name) override {
      found = found || name == option;
      return name == option ? texts : std::vector<std::string>{};
    }
    const std::string& option;
    const std::vector<std::string>& texts;
    bool found = false;
  } reader(option, texts);
  describe(reader);
  return reader.found;
}

void check_fields(const std::function<void(Fields&)>& describe) {
  struct Checker : Fields {
    using Fields::object;
    void object(const Field&, const std::function<void(Fields&)>& inner) override { inner(*this); }
    bool is_set(const Field&, bool current) override { return current; }
    void visit(const Field& field, const FieldValue& value) override {
      if (value.fits()) return;
      const auto* const integer = std::get_if<int64_t*>(&value.member);
      throw Error(field.name, expected_of(value), integer ? str(**integer) : str(*std::get<double*>(value.member)));
    }
  } checker;
  describe(checker);
}

std::vector<FieldRow> rows_of(const std::function<void(Fields&)>& describe) {
  std::vector<FieldRow> rows;
  RowLister lister("", rows);
  describe(lister);
  return rows;
}

}  // namespace vitrail
