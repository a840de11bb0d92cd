# The manual pages of the library, weft_NAME.3, from its headers.
find_program(AWK awk)
file(GLOB headers CONFIGURE_DEPENDS include/weft/*.h)
list(FILTER headers EXCLUDE REGEX "/weft\\.h$")
set(pages "")
foreach(header ${headers})
  get_filename_component(name ${header} NAME_WE)
  set(page ${CMAKE_BINARY_DIR}/man/man3/weft_${name}.3)
  add_custom_command(OUTPUT ${page}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man/man3
                     COMMAND sh -c "${AWK} -v name=weft_${name} -v header=${name}.h -f ${PROJECT_SOURCE_DIR}/tools/man3.awk ${header} > ${page}"
                     DEPENDS ${header} tools/man3.awk COMMENT "Writing weft_${name}(3)" VERBATIM)
  list(APPEND pages ${page})
endforeach()
add_custom_target(man3 ALL DEPENDS ${pages})
