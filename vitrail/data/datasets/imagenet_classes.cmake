# SPDX-License-Identifier: Apache-2.0
# Embeds imagenet_classes.txt: the generated source defines the functions of imagenet_labels.h.  A line of the file is a
# WordNet id, a space and the class name, as in ILSVRC's synset_words.txt.
set(imagenet_file ${CMAKE_CURRENT_SOURCE_DIR}/data/datasets/imagenet_classes.txt)
set(imagenet_source ${CMAKE_CURRENT_BINARY_DIR}/imagenet_labels.cpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${imagenet_file})
file(STRINGS ${imagenet_file} imagenet_lines)
list(LENGTH imagenet_lines imagenet_count)
set(imagenet_ids "")
set(imagenet_names "")
foreach(line IN LISTS imagenet_lines)
  if(NOT line MATCHES "^(n[0-9]+) ([^\"\\]+)$")
    message(FATAL_ERROR "${imagenet_file}: '${line}' is no WordNet id and class name")
  endif()
  string(APPEND imagenet_ids "    \"${CMAKE_MATCH_1}\",\n")
  string(APPEND imagenet_names "    \"${CMAKE_MATCH_2}\",\n")
endforeach()
file(CONFIGURE OUTPUT ${imagenet_source} @ONLY CONTENT [[
// Generated from vitrail/data/datasets/imagenet_classes.txt by imagenet_classes.cmake.
#include "vitrail/data/datasets/imagenet_labels.h"

namespace vitrail::data {
namespace {
constexpr std::string_view kIds[@imagenet_count@] = {
@imagenet_ids@};
constexpr std::string_view kNames[@imagenet_count@] = {
@imagenet_names@};
}  // namespace
std::span<const std::string_view> imagenet_class_names() { return kNames; }
std::span<const std::string_view> imagenet_wordnet_ids() { return kIds; }
}  // namespace vitrail::data
]])
target_sources(vitrail_lib PRIVATE ${imagenet_source})
