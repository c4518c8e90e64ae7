# SPDX-License-Identifier: Apache-2.0
# Embeds architectures/*.json as string literals: the generated source defines builtin_architectures() in the order of
# this list.
set(VITRAIL_ARCHITECTURES vit deit dinov2 clip siglip siglip_gap beit aimv2 eva timm tutorials)

set(architectures_source ${CMAKE_CURRENT_BINARY_DIR}/builtin_architectures.cpp)
set(architectures_table "")
foreach(name ${VITRAIL_ARCHITECTURES})
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/models/architectures/${name}.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(APPEND architectures_table "    {\"${name}.json\", R\"vitrail(${text})vitrail\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${architectures_source} @ONLY CONTENT [[
// Generated from vitrail/models/architectures/*.json by architectures.cmake.
#include "vitrail/models/builtin_architectures_internal.h"

namespace vitrail::models {
namespace {
constexpr BuiltinArchitectures kFiles[] = {
@architectures_table@};
}  // namespace
std::span<const BuiltinArchitectures> builtin_architectures() { return kFiles; }
}  // namespace vitrail::models
]])
target_sources(vitrail_lib PRIVATE ${architectures_source})
