# SPDX-License-Identifier: Apache-2.0
# vitrail_embed_json(FUNCTION NAMESPACE HEADER FOLDER NAME...): embeds FOLDER/NAME.json of each NAME as string literals.
# The generated source, which is compiled into vitrail_lib, defines FUNCTION of NAMESPACE, which HEADER declares and
# which returns the files in the order of the names.
function(vitrail_embed_json FUNCTION NAMESPACE HEADER FOLDER)
  set(TABLE "")
  foreach(name ${ARGN})
    set(file ${CMAKE_CURRENT_SOURCE_DIR}/${FOLDER}/${name}.json)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND TABLE "    {\"${name}\", R\"vitrail(${text})vitrail\"},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${FUNCTION}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
// Generated from vitrail/@FOLDER@/*.json by cmake/embed_json.cmake.
#include "@HEADER@"

namespace @NAMESPACE@ {
namespace {
constexpr EmbeddedJson kFiles[] = {
@TABLE@};
}  // namespace
std::span<const EmbeddedJson> @FUNCTION@() { return kFiles; }
}  // namespace @NAMESPACE@
]])
  target_sources(vitrail_lib PRIVATE ${source})
endfunction()
