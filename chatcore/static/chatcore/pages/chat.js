// The page of a chat.

import "./app.js";
import "../js/chat.js";
import "../js/chat_settings_opening.js";
