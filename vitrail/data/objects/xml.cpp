// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/objects/xml_internal.h"

#include <algorithm>
#include <charconv>

#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"

namespace vitrail::data {
namespace {

constexpr int kMaxXmlDepth = 32;
constexpr std::string_view kXmlBlanks = " \t\r\n";

std::string_view without_blanks(std::string_view text) {
  const size_t first = std::min(text.find_first_not_of(kXmlBlanks), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(kXmlBlanks) + 1);
}

class XmlParser {
 public:
  XmlParser(std::string_view text, const std::string& where) : text_(text), where_(where) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  XmlElement document() {
    skip_to_element();
    XmlElement root = element(0);
    skip_to_element();
    if (at_ != text_.size()) fail("one outermost element", "another");
    return root;
  }

 private:
  size_t line() {
    line_ += static_cast<size_t>(std::ranges::count(text_.substr(counted_, at_ - counted_), '\n'));
    counted_ = at_;
    return line_;
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& got) {
    throw Error(str(where_, ":", line()), expected, got);
  }

  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  // The text up to `end`, which is passed.
  std::string_view up_to(std::string_view end) {
    const size_t found = text_.find(end, at_);
    if (found == text_.npos) fail(str("XML with \"", end, "\""), "the end of the file");
    const std::string_view before = text_.substr(at_, found - at_);
    at_ = found + end.size();
    return before;
  }

  // Comments, processing instructions and a document type.
  bool skip_markup() {
    if (starts("<!--")) {
      up_to("-->");
    } else if (starts("<?")) {
      up_to("?>");
    } else if (starts("<!DOCTYPE")) {
      if (up_to(">").find('[') != text_.npos) fail("XML without definitions of its own", "<!DOCTYPE … [");
    } else {
      return false;
    }
    return true;
  }

  void skip_to_element() {
    do {
      at_ = std::min(text_.find_first_not_of(kXmlBlanks, at_), text_.size());
    } while (skip_markup());
    if (at_ < text_.size() && !starts("<")) fail("XML: an element", "'" + std::string(text_.substr(at_, 20)) + "'");
  }

  // From "<NAME …>" to "</NAME>".
  XmlElement element(int depth) {
    if (!starts("<")) fail("XML: an element", "the end of the file");
    if (depth == kMaxXmlDepth) fail(str("at most ", kMaxXmlDepth, " elements in each other"), "more");
    XmlElement result;
    result.line = line();
    ++at_;
    std::string_view tag = up_to(">");
    const bool is_empty = tag.ends_with('/');
    if (is_empty) tag.remove_suffix(1);
    result.name = tag.substr(0, tag.find_first_of(kXmlBlanks));
    if (result.name.empty() || result.name.front() == '/') fail("the name of an element", "<" + std::string(tag) + ">");
    if (!is_empty) content(result, depth);
    return result;
  }

  void content(XmlElement& element_of, int depth) {
    std::string text;
    while (true) {
      append_text(text);
      if (starts("<![CDATA[")) {
        at_ += std::string_view("<![CDATA[").size();
        text += up_to("]]>");
      } else if (starts("</")) {
        at_ += 2;
        const std::string_view name = without_blanks(up_to(">"));
        if (name != element_of.name)
          fail(str("</", element_of.name, ">, for line ", element_of.line), str("</", name, ">"));
        break;
      } else if (!skip_markup()) {
        element_of.children.push_back(element(depth + 1));
      }
    }
    element_of.text = without_blanks(text);
  }

  // The text up to the next '<', with its entities.
  void append_text(std::string& to) {
    while (at_ < text_.size() && text_[at_] != '<') {
      if (text_[at_] != '&') {
        to += text_[at_++];
        continue;
      }
      ++at_;
      append_entity(up_to(";"), to);
    }
    if (at_ == text_.size()) fail("XML with all elements closed", "the end of the file");
  }

  void append_entity(std::string_view name, std::string& to) {
    constexpr std::pair<std::string_view, char> kEntities[] = {
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, character] : kEntities) {
      if (known == name) {
        to += character;
        return;
      }
    }
    const bool is_hex = name.starts_with("#x");
    const std::string_view digits = name.substr(std::min<size_t>(is_hex ? 2 : 1, name.size()));
    uint32_t code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
    const bool is_number = name.starts_with('#') && error == std::errc() && end == digits.data() + digits.size();
    if (!is_number || code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      fail("an entity of XML", "&" + std::string(name.substr(0, 20)) + ";");
    append_utf8(code, to);
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0, counted_ = 0, line_ = 1;
};

}  // namespace

const XmlElement* XmlElement::child(std::string_view wanted) const {
  const auto found = std::ranges::find(children, wanted, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

XmlElement parse_xml(std::string_view text, const std::string& where) { return XmlParser(text, where).document(); }

}  // namespace vitrail::data
