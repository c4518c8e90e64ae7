# SPDX-License-Identifier: Apache-2.0
# vitrail_embed_files(FUNCTION NAMESPACE HEADER FOLDER FILE...): embeds FOLDER/FILE of each FILE as string literals.
# The generated source, which is compiled into vitrail_lib, defines FUNCTION of NAMESPACE, which HEADER declares and
# which returns the files in their order.  The name of a file of JSON is without .json.  FILE may be text or a .jpg.
function(vitrail_embed_files FUNCTION NAMESPACE HEADER FOLDER)
  set(TABLE "")
  foreach(name ${ARGN})
    set(file ${CMAKE_CURRENT_SOURCE_DIR}/${FOLDER}/${name})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    if(name MATCHES "[.]jpg$")
      file(READ ${file} bytes HEX)
      string(REGEX REPLACE "(..)" "\\\\x\\1" literal "${bytes}")
      set(literal "\"${literal}\"sv")
    else()
      file(READ ${file} text)
      set(literal "R\"vitrail(${text})vitrail\"")
    endif()
    string(REGEX REPLACE "[.]json$" "" name ${name})
    string(APPEND TABLE "    {\"${name}\", ${literal}},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${FUNCTION}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
// Generated from vitrail/@FOLDER@ by cmake/embed_files.cmake.
#include "@HEADER@"

namespace @NAMESPACE@ {
std::span<const EmbeddedFile> @FUNCTION@() {
  using namespace std::string_view_literals;
  static constexpr EmbeddedFile kFiles[] = {
@TABLE@};
  return kFiles;
}
}  // namespace @NAMESPACE@
]])
  target_sources(vitrail_lib PRIVATE ${source})
endfunction()

# vitrail_embed_json(FUNCTION NAMESPACE HEADER FOLDER NAME...): likewise, of FOLDER/NAME.json.
function(vitrail_embed_json)
  list(SUBLIST ARGV 0 4 arguments)
  list(SUBLIST ARGV 4 -1 names)
  list(TRANSFORM names APPEND .json)
  vitrail_embed_files(${arguments} ${names})
endfunction()
