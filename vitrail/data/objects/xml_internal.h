// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of XML that files of annotations have: elements with text.
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

struct XmlElement {
  std::string name;
  std::string text;  // between its elements, without blanks around it
  std::vector<XmlElement> children = {};
  size_t line = 0;

  const XmlElement* child(std::string_view name) const;  // the first of this name; null: none
};

// The outermost element.  Attributes, comments, processing instructions and a document type are left out.  Throws Error
// naming the line for text that is not well-formed, deep nesting, and entities other than XML's own.
XmlElement parse_xml(std::string_view text, const std::string& where);

}  // namespace vitrail::data
