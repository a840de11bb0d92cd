# src/app is the program, build/weft. It may include what every layer declares. All but main.c is a library too, of which a
# unit test takes the files it is about.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/app/*.c)
weft_rooms(src/app rooms)
list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/src/app/main.c)
add_library(weft_app STATIC ${sources})
target_include_directories(weft_app PUBLIC ${rooms})
target_link_libraries(weft_app PUBLIC weft_internal weft_program libweft PkgConfig::UV PkgConfig::SSL PkgConfig::QRENCODE m)
include(cmake/web.cmake)
add_executable(weft src/app/main.c)
target_link_libraries(weft PRIVATE weft_app)

# Its manual pages, from its own tables. A sanitized program is not for installing, and may not even run in a build.
if(NOT WEFT_SANITIZE)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man.stamp
                     COMMAND ${CMAKE_COMMAND} -DWEFT=$<TARGET_FILE:weft> -DTO=${CMAKE_BINARY_DIR}/man -P ${PROJECT_SOURCE_DIR}/cmake/man.cmake
                     COMMAND ${CMAKE_COMMAND} -DWEFT=$<TARGET_FILE:weft> -DTO=${CMAKE_BINARY_DIR}/completion -P ${PROJECT_SOURCE_DIR}/cmake/completion.cmake
                     COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/man.stamp
                     DEPENDS weft cmake/man.cmake cmake/completion.cmake COMMENT "Writing the manual pages" VERBATIM)
  add_custom_target(man ALL DEPENDS ${CMAKE_BINARY_DIR}/man.stamp)
  include(cmake/man3.cmake)
endif()
