"""What PostgreSQL says of statements that were ended and logins that it refused, in the languages that it speaks.

SQLSTATE 57014 stands for a limit and for somebody's request alike; Java tells of an error by its text alone, and so
does libpq of a refused login. Only a superuser may set lc_messages, so that a refresher is answered in the language of
its server.
"""

import re

STATEMENT_TIMEOUT = frozenset(
    {
        "canceling statement due to statement timeout",
        "storniere Anfrage wegen Zeitüberschreitung der Anfrage",
        "cancelando la sentencia debido a que se agotó el tiempo de espera de sentencias",
        "annulation de la requête à cause du délai écoulé pour l'exécution de l'instruction",
        "annullamento dell'istruzione a causa di timeout",
        "ステートメントのタイムアウトのためステートメントをキャンセルしています",
        "명령실행시간 초과로 작업을 취소합니다.",
        "выполнение оператора отменено из-за тайм-аута",
        "avbryter sats på grund av sats-timeout",
        "виконання оператора скасовано через тайм-аут",
        "由于语句执行超时，正在取消查询命令",
    }
)
LOCK_TIMEOUT = frozenset(
    {
        "canceling statement due to lock timeout",
        "storniere Anfrage wegen Zeitüberschreitung einer Sperre",
        "cancelando la sentencia debido a que se agotó el tiempo de espera de candados (locks)",
        "annulation de la requête à cause du délai écoulé pour l'obtention des verrous",
        "annullamento dell'istruzione a causa di timeout di lock",
        "ロックのタイムアウトのためステートメントをキャンセルしています",
        "გამოსახულება გაუქმდება ბლოკის მოლოდინის ვადის ამოწურვის გამო",
        "잠금 대기 시간 초과로 작업을 취소합니다.",
        "выполнение оператора отменено из-за тайм-аута блокировки",
        "avbryter sats på grund av lås-timeout",
        "виконання оператора скасовано через тайм-аут блокування",
        "由于锁超时，取消语句操作",
    }
)
USER_REQUEST = frozenset(
    {
        "canceling statement due to user request",
        "storniere Anfrage wegen Benutzeraufforderung",
        "cancelando la sentencia debido a una petición del usuario",
        "annulation de la requête à la demande de l'utilisateur",
        "annullamento dell'istruzione su richiesta dell'utente",
        "ユーザーからの要求により文をキャンセルしています",
        "사용자 요청에 의해 작업을 취소합니다.",
        "выполнение оператора отменено по запросу пользователя",
        "avbryter sats på användares begäran",
        "виконання оператора скасовано по запиту користувача",
        "由于用户请求而正在取消查询",
    }
)
ERROR = frozenset(
    {
        "ERROR",
        "FEHLER",
        "ERREUR",
        "ERRORE",
        "შეცდომა",
        "오류",
        "ОШИБКА",
        "FEL",
        "ПОМИЛКА",
        "错误",
    }
)
LOGIN_REFUSED = re.compile(
    "|".join(
        (
            "authentication failed",
            "no password supplied",
            r"pg_hba\.conf",
            "does not exist",
            "Passwort-Authentifizierung für Benutzer .* fehlgeschlagen",
            "(Rolle|Datenbank) .* existiert nicht",
            "la autentificación password falló para el usuario",
            "no existe (el rol|la base de datos)",
            "authentification par mot de passe échouée",
            "(le rôle|la base de données) .* n'existe pas",
            "autenticazione con password fallita",
            "il (ruolo|database) .* non esiste",
            "パスワード認証に失敗しました",
            "(ロール|データベース).*は存在しません",
            "პაროლით ავთენტიფიკაცია",
            "(როლი|მონაცემთა ბაზა) .*არ არსებობს",
            "password 인증을 실패했습니다",
            r"롤\(role\) 없음|데이터베이스 없음",
            "не прошёл проверку подлинности",
            "(роль|база данных) .* не существует",
            "Lösenordsautentisering misslyckades",
            "(rollen .* finns|databasen .* existerar) inte",
            "не пройшов автентифікацію",
            "роль .* не існує|бази даних .* не існує",
            "Password 认证失败",
            "(角色|数据库) .* 不存在",
        )
    )
)
