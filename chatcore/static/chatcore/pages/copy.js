// A page with a whole chat, to be printed or shared.

import "../js/whole_chat.js";
